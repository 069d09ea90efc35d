// Package controlrpc is the control stream between processes: gRPC over one
// connection that the server dials, so that nodes need not reach servers. Files
// travel beside the stream on the same address, plugins to the node by a call,
// parts from it over HTTP.
//
// # Trust
//
// A connection is TLS, with certificates of both sides or a token that both know,
// or it is plain: on loopback, or where an operator says so. Plans carry the
// secrets of targets, and nobody else may ask for the parts of a record.
//
// # Failure
//
// Each end writes from a queue of its own, so that a peer that has stopped
// reading delays nobody else; keepalive on both ends notices a connection that
// has gone silent. When a stream ends, what it had received is still delivered.
package controlrpc
