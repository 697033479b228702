"""placeholder"""
MUTANTS = {}
