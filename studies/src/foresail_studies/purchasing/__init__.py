"""Study of purchasing: what to own, reserve and rent for a year of demand."""
