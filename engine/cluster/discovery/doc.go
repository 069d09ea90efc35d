// Package discovery finds the addresses of nodes while a server runs: those of a name in DNS,
// such as a headless service of Kubernetes or a service of AWS Cloud Map, and those of the
// catalog. It finds addresses only; a node is who its certificate says, or its Hello, so
// that one with two addresses counts once.
//
// What cannot be looked up now is as it was: a name server that is away ends no load. An
// address that is gone is not dialled any more once its stream breaks, because a name that is
// not resolved for a moment, or leaves out a node that drains, says nothing about its load.
package discovery
