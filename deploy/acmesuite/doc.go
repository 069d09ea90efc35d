// Package acmesuite has the program, as `make build` makes it, ask Pebble for certificates: the authority that Let's
// Encrypt gives to test clients. Everything is on loopback, the name server too. `make check-acme` runs it.
package acmesuite
