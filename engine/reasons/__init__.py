"""Why a move is bad: reasons in plain English, each confirmed by a search or by exact tables."""
