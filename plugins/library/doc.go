// Package library keeps the plugins that people upload, and decides which
// plugin a name means.
//
// A file passes quarantine and is stored disabled; an admin looks at what it
// declares and enables it. The control store holds the register and the bytes,
// so that several servers on one store have the same plugins and a lost data
// directory loses none; <data>/plugins/<sha256>.wasm is this server's copy, from
// which it loads. Code is loaded when it is first used, and the bytes are
// compared with the hash at every load: a file that was changed afterwards is
// reported as damaged and not executed. Uploading the right bytes again mends it.
//
// Names: a plugin of the program itself (bundled, or named on the command line)
// has its name for itself. Else a bare name means the highest version that is
// enabled, name@version means that version, and a SHA-256 that file. A run
// freezes the hash when it is made, so that nothing which is enabled, disabled
// or uploaded later changes what it executes.
//
// Trust: everything in an uploaded file is hostile, its texts included. The
// library never executes a file that did not pass quarantine, and shows only what
// plugins/host has cleaned.
package library
