package terminal

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// maxPlugin is the most bytes of a plugin file.
const maxPlugin = 8 << 20

// ReadPlugin reads a plugin file.
func ReadPlugin(path string) ([]byte, error) {
	return ReadRegular("The plugin file", path, maxPlugin)
}

// PluginError names the file whose plugin was refused.
func PluginError(path string, err error) error {
	return &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf("The plugin %s cannot be used: %v", path, err),
		Hint: "loadstone plugin test " + path + " shows what is wrong", Cause: err}
}
