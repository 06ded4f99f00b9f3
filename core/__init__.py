"""The transformer of the lesson in numpy alone: small pure functions, arrays in and arrays out.

Shapes are written as in the papers: n is the sequence length, d the model width, d_k the width of one head.
Every draw takes a seed. Nothing here knows about the screen.
"""
