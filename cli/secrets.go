package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plan/template"
)

// tokenFlags name the token for a server. Arguments can be read by every user of
// the machine; the environment and files cannot.
type tokenFlags struct {
	Token     string `env:"LOADSTONE_TOKEN" help:"API token. Arguments are visible to other users: prefer LOADSTONE_TOKEN or --token-file."`
	TokenFile string `placeholder:"FILE" env:"LOADSTONE_TOKEN_FILE" help:"File with the API token."`
	ServerCA  string `name:"server-ca" placeholder:"FILE" env:"LOADSTONE_SERVER_CA" help:"PEM file of the server's certificate authority, or of its self-signed certificate (default: the system's)."`
}

func (f tokenFlags) token() (secret.Secret, error) {
	text, err := terminal.SecretFlag("--token", f.Token, f.TokenFile)
	return secret.New(text), err
}

// connect returns a client for the server at address.
func (f tokenFlags) connect(address string) (*client, error) {
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	c, err := newClient(address, token)
	if err != nil || f.ServerCA == "" {
		return c, err
	}
	text, err := terminal.ReadBounded("The file of --server-ca", f.ServerCA, 1<<20)
	if err != nil {
		return nil, err
	}
	c.http.Transport, err = TransportTrusting(text)
	return c, err
}

// setFileAssignments are the assignments of --set-file: each value is the text of a file, whatever it looks like in
// YAML.
func setFileAssignments(list []string) ([]template.Assignment, error) {
	var fields []template.Assignment
	for _, set := range list {
		path, file, ok := strings.Cut(set, "=")
		if !ok || file == "" {
			return nil, &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("--set-file %s names no file.", set),
				Hint: "write --set-file path=FILE, for example --set-file target.connection.dsn=/run/secrets/dsn"}
		}
		text, err := terminal.ReadSecret("The file of --set-file "+path, file)
		if err != nil {
			return nil, err
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, fmt.Errorf("quoting the value of %s: %w", path, err)
		}
		fields = append(fields, template.Assignment{Path: path, Value: string(quoted)})
	}
	return fields, nil
}
