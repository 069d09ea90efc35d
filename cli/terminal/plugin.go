package terminal

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// maxPlugin is the most bytes of a plugin file.
const maxPlugin = 8 << 20

// Plugin reads a plugin file.
func Plugin(path string) ([]byte, error) {
	return Regular("The plugin file", path, maxPlugin)
}

// RefusedPlugin names the file whose plugin was refused.
func RefusedPlugin(path string, err error) error {
	return &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf("The plugin %s cannot be used: %v", path, err),
		Hint: "loadstone plugin test " + path + " shows what is wrong", Cause: err}
}
