"""Systems of papers done again, with the public parts of the project: configurations, experiments, reports."""
