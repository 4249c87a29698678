from .tower import Siamese


def build_model(name, **kwargs):
    return MODELS[name](**kwargs)


MODELS = {"siamese": Siamese}
