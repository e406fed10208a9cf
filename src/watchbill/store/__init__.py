"""STORE: the only door to durable state. Facts go in and come out; rooms get their own narrow set of doors."""
