// Package hostile makes plugin files that mean harm, or that are broken in ways
// in which files break. Every file says where it must be stopped, and with which
// words, so that one list drives all tests: the gate alone, the gate with the
// quarantine behind it, a run, and a live server.
//
// The files are made by code and not kept as bytes only, so that a reader sees
// what is wrong with each. Those of testdata/hostile are written by
//
//	go run ./plugins/host/hosttest/hostilegen
//
// and a test checks that they are what this package makes; they are kept for
// other tools, and as seeds. Large files are never stored.
package hostile
