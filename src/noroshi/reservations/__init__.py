"""The reservation domain (L): payments and cancellations in, jobs in one table and LINE messages from it out."""
