package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/template"
)

// tokenFlags name the token for a server. Arguments can be read by every user of
// the machine; the environment and files cannot.
type tokenFlags struct {
	Token     string `env:"LOADSTONE_TOKEN" help:"API token for the server. Other users of this machine can read arguments: better LOADSTONE_TOKEN, or --token-file."`
	TokenFile string `placeholder:"FILE" env:"LOADSTONE_TOKEN_FILE" help:"File that holds the API token."`
}

func (f tokenFlags) token() (string, error) { return secretOf("--token", f.Token, f.TokenFile) }

// connect returns a client for the server at address.
func (f tokenFlags) connect(address string) (*client, error) {
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	return newClient(address, token)
}

// databaseFlags name the external control store, if any.
type databaseFlags struct {
	DatabaseURL     string `placeholder:"URL" env:"LOADSTONE_DATABASE_URL" help:"Use this Postgres as control store instead of the embedded one: postgres://user:password@host:5432/database. Other users of this machine can read arguments: better the environment, or --database-url-file."`
	DatabaseURLFile string `name:"database-url-file" placeholder:"FILE" env:"LOADSTONE_DATABASE_URL_FILE" help:"File that holds the database URL."`
}

func (f databaseFlags) databaseURL() (string, error) {
	return secretOf("--database-url", f.DatabaseURL, f.DatabaseURLFile)
}

// maxSecret is the most bytes of a file with a secret.
const maxSecret = 64 << 10

// secretOf returns the secret of a flag or of the file that its sibling flag-file names; "" without both.
func secretOf(flag, value, file string) (string, error) {
	switch {
	case file == "":
		return value, nil
	case value != "":
		return "", engine.InvalidField(flag, "is given, and "+flag+"-file too", "give one of them, also in the environment")
	}
	return readSecret("The file of "+flag+"-file", file)
}

// readSecret reads a file, of which the last line end does not count.
func readSecret(what, path string) (string, error) {
	text, err := readBounded(what, path, maxSecret)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if secret == "" {
		return "", &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s, %s, is empty.", what, path)}
	}
	return secret, nil
}

// fromFiles are the assignments of --set-file: each value is the text of a file, whatever it looks like in YAML.
func fromFiles(list []string) ([]template.Assignment, error) {
	var fields []template.Assignment
	for _, set := range list {
		path, file, ok := strings.Cut(set, "=")
		if !ok || file == "" {
			return nil, &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("--set-file %s names no file.", set),
				Hint: "write --set-file path=FILE, for example --set-file target.connection.dsn=/run/secrets/dsn"}
		}
		secret, err := readSecret("The file of --set-file "+path, file)
		if err != nil {
			return nil, err
		}
		quoted, err := json.Marshal(secret)
		if err != nil {
			return nil, fmt.Errorf("quoting the value of %s: %w", path, err)
		}
		fields = append(fields, template.Assignment{Path: path, Value: string(quoted)})
	}
	return fields, nil
}
