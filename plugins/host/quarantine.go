package host

// Gate reads a file with the static parser alone: nothing is compiled, and time
// and memory are bounded by the length of the file. An error wraps
// plugin.ErrNoMemory. Safe in the server's own process, whatever the file is.
func Gate(wasm []byte) error {
	_, _, err := examine(wasm)
	return err
}
