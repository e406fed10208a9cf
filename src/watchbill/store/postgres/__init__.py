"""POSTGRES: the store on PostgreSQL, shared by many processes. Facts go in and come out; one door is one statement."""
