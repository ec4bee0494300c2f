// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{sparse_tensor.encoding: map is not a permutation, expected each of 2 dimensions once, got (d0, d1) -> (d0, d0)}}
func.func private @f(tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d0 : compressed) }>>)

// -----

// expected-error @+1 {{sparse_tensor.encoding: unknown level type, expected one of dense, compressed, loose_compressed, singleton, batch, got sparse}}
func.func private @f(tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : sparse) }>>)

// -----

// expected-error @+1 {{sparse_tensor.encoding: unknown level property, expected one of nonunique, nonordered, soa, got unique}}
func.func private @f(tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed(unique)) }>>)

// -----

// expected-error @+1 {{sparse_tensor.encoding: crdWidth not supported, expected one of 0, 8, 16, 32, 64, got 33}}
func.func private @f(tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), crdWidth = 33 }>>)

// -----

// expected-error @+1 {{expected a dimension of d0, d1, got d2}}
func.func private @f(tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d2 : compressed) }>>)

// -----

// expected-error @+1 {{expected map, posWidth or crdWidth, got width}}
func.func private @f(tensor<4x4xf32, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), width = 32 }>>)

// -----

// expected-error @+1 {{the encoding has no map}}
func.func private @f(tensor<4x4xf32, #sparse_tensor.encoding<{ posWidth = 32 }>>)
