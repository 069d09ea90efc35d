// Package pki is how servers and nodes know each other without a word of an
// operator's own certificates: the servers' own authority, the tokens by which nodes
// join, and the certificates of both sides.
//
// # Who trusts whom
//
// The servers of one control store share an authority, a key that signs. A server has a
// certificate for a day that it makes for itself; a node has one for thirty days that a
// server has signed, and the authority's own, by which it knows servers from then on. The
// certificate of a node is good for answering only and that of a server for dialling only,
// so that neither can pass for the other. The identity of a node is the name in its
// certificate, and no address.
//
// # The first contact
//
// A server dials, so that a node which has not joined waits for somebody whom it does not
// know. Its token names the authority by a fingerprint, and holds a secret. In the first
// handshake the server proves that it has a certificate of that authority, for a key that
// it holds; only then does the node say the secret, inside of that connection, with a
// request for a certificate. Who sits between the two has no such key, and hears nothing.
// The server knows the hash of the secret, signs, and counts the token as used by this
// node's key: the same node may ask again when the answer was lost, and nobody else.
//
// # Members
//
// Members say who may be a node of the servers of one control store: tokens, certificates, their renewal and
// revocation, and the catalog of addresses. The authority is made when it is first needed, and is the same on all
// servers. A server signs itself another certificate when two thirds of its day are over: whoever took one has it no
// longer than that, and there is nothing to revoke. What is revoked holds for every server of the store within
// RefreshInterval, at the next
// handshake and on streams that stand; while the store is away, what was known last holds.
//
// # Failure
//
// Clocks may be apart by an hour and more: certificates begin two hours before they are made.
// A token is judged by the clock of the control store. A node keeps its key and its
// certificate in one file, replaced as a whole.
package pki
