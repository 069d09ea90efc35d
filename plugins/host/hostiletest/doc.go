// Package hostiletest makes plugin files that mean harm, or that are broken in ways
// in which files break. Every file says where it must be stopped, and with which
// words, so that one list drives all tests: the gate alone, the gate with the
// quarantine behind it, a run, and a live server.
//
// The files are made by code and not kept as bytes, so that a reader sees what is
// wrong with each. plugins/host/testdata/hostile/INDEX.txt lists them with their sizes
// and SHA-256, and a test compares it with what this package makes. From here,
//
//	go test . -update
//	go test . -write FOLDER
//
// write the index, and the files themselves, for other tools.
package hostiletest
