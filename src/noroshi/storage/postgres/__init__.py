"""The store on PostgreSQL: any number of processes over one database."""
