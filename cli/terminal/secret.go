package terminal

import (
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// maxSecret is the most bytes of a file with a secret.
const maxSecret = 64 << 10

// SecretFlag returns the secret of a flag or of the file that its sibling flag-file names; "" without both.
func SecretFlag(flag, value, file string) (string, error) {
	switch {
	case file == "":
		return value, nil
	case value != "":
		return "", engine.InvalidField(flag, "is given, and "+flag+"-file too", "give one of them, also in the environment")
	}
	return ReadSecret("The file of "+flag+"-file", file)
}

// ReadSecret reads a file, of which the last line end does not count.
func ReadSecret(what, path string) (string, error) {
	text, err := ReadBounded(what, path, maxSecret)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if secret == "" {
		return "", &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s, %s, is empty.", what, path)}
	}
	return secret, nil
}
