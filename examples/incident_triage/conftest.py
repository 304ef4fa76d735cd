"""Lets the tests below import the agent: pytest puts the folder of a conftest.py on the path."""
