"""Lets the tests import `model_server`: pytest puts the folder of a conftest.py on the path."""
