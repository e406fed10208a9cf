"""SQLITE: the store in one file, owned by one process. Doors go in; sqlite3 and its errors never come out."""
