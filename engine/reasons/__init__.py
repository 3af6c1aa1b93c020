"""Why a move is bad: reasons in plain English, each confirmed by a search, by exact tables, or by the expected play."""
