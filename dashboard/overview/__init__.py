"""The Overview: is it fine?"""
