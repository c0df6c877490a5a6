import hedgerow.engines.grpc  # noqa: F401 - before gRPC itself: it tells gRPC's core to be quiet
