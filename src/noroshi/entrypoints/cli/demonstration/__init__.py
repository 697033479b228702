"""The demonstration that `noroshi serve --dev` gives: people, templates, one of each fate, and commands to paste."""
