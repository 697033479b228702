"""The nouns of the glossary and the pure rules about them; imports nothing of ours."""
