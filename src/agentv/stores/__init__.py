"""Run stores, one package for each kind of database, with the statements that they share."""
