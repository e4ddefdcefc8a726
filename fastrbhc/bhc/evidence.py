from __future__ import annotations
import math
def check_search(alpha, hyperparameters): pass
def search(rows, model, alpha, hyperparameters, n_threads, report, random_state, build):
    return model.completed(rows), math.log(alpha)
