// Package hostile makes plugin files that mean harm, or that are broken in ways
// in which files break. Every file says where it must be stopped, and with which
// words, so that one list drives all tests: the gate alone, the gate with the
// quarantine behind it, a run, and a live server.
//
// The files are made by code and not kept as bytes, so that a reader sees what is
// wrong with each. testdata/hostile/INDEX.txt lists them with their sizes and
// SHA-256, and a test compares it with what this package makes. It is written by
//
//	go run ./plugins/host/hosttest/hostilegen
//
// which with a folder as argument writes the files themselves, for other tools.
package hostile
