"""The cache of imported model files: the program of a model file is read from a file, as long as nothing that it depends on changed.

cache        the walk: look an entry up, or import the model and keep it
request      what the user asked for, and the installation that answers
recorder     the files that the model read while it was imported, and whether they are still as they were
repeatable   whether the code of the model does the same when it runs again
entry        a source as the bytes of one file, the store of these files, and the names in a kept program
"""
