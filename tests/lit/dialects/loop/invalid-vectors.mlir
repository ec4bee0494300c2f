// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{loop.kernel: wrong loop.vectors, expected #loop.vectors, got "x"}}
loop.kernel @k() -> () attributes {loop.vectors = "x"} {
}

// -----

// expected-error @+1 {{#loop.vectors: rows are cut twice, got 4 = [2, 2]}}
loop.kernel @k() -> () attributes {loop.vectors = #loop.vectors<hoist 1, 4 = [4], 4 = [2, 2]>} {
}

// -----

// expected-error @+1 {{#loop.vectors: the width of a chunk is not a power of 2, got 6 = [6]}}
loop.kernel @k() -> () attributes {loop.vectors = #loop.vectors<hoist 1, 6 = [6]>} {
}

// -----

// expected-error @+1 {{#loop.vectors: a chunk has no lanes or more than its width, got 5 = [5 of 4]}}
loop.kernel @k() -> () attributes {loop.vectors = #loop.vectors<hoist 1, 5 = [5 of 4]>} {
}

// -----

// expected-error @+1 {{#loop.vectors: the chunks do not cover a row, expected 23 lanes, got 20 in 23 = [16, 4]}}
loop.kernel @k() -> () attributes {loop.vectors = #loop.vectors<hoist 1, 23 = [16, 4]>} {
}

// -----

// expected-error @+1 {{#loop.vectors: axes cannot be merged, expected two axes or more, the last two with a power of 2 lanes, got [4]}}
loop.kernel @k() -> () attributes {loop.vectors = #loop.vectors<hoist 1, merged [4]>} {
}

// -----

// expected-error @+1 {{#loop.vectors: axes cannot be merged, expected two axes or more, the last two with a power of 2 lanes, got [2, 3]}}
loop.kernel @k() -> () attributes {loop.vectors = #loop.vectors<hoist 1, merged [2, 3]>} {
}
