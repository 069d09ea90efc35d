package watch

// EncodedSize is for tests of what is counted.
var EncodedSize = encodedSize
