// Package rpc is the control stream between processes: gRPC over one
// connection that the server dials, so that nodes need not reach servers. Files
// travel beside the stream on the same address, plugins to the node by a call,
// parts from it over HTTP.
//
// # Trust
//
// A connection is TLS, or it is plain: on loopback, or where an operator says so. Plans carry
// the secrets of targets, and nobody else may ask for the parts of a record. With the servers'
// own authority (engine/cluster/pki) a node joins by a token, has a certificate that the
// server renews on the stream, and is who its certificate says; with the operator's own
// certificates, or a token that both know, the operator sees to all of that.
//
// Who reaches the port and has not shown that it is a server sees whether the node is well,
// and holds a bounded number of connections for a bounded time.
//
// # Failure
//
// Each end writes from a queue of its own, so that a peer that has stopped
// reading delays nobody else; keepalive on both ends notices a connection that
// has gone silent. When a stream ends, what it had received is still delivered.
package rpc
