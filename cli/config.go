// This part reads the configuration file: defaults of flags.

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

const (
	configEnv      = "LOADSTONE_CONFIG"
	maxConfigBytes = 1 << 20
	configHint     = "docs/operate/configure.md has an example"
)

// configPath is the configuration file that arguments or the environment name, else the user's; named tells that it
// has to be there. An empty variable is no file.
func configPath(args []string) (path string, named bool) {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if value, ok := strings.CutPrefix(arg, "--config="); ok {
			return value, true
		}
		if arg == "--config" && i+1 < len(args) {
			return args[i+1], true
		}
	}
	if value, set := os.LookupEnv(configEnv); set {
		return value, value != ""
	}
	folder := os.Getenv("XDG_CONFIG_HOME")
	if folder == "" && runtime.GOOS != "windows" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", false
		}
		folder = filepath.Join(home, ".config") // on macOS, too, as tools of the command line have it
	}
	if folder == "" {
		var err error
		if folder, err = os.UserConfigDir(); err != nil {
			return "", false
		}
	}
	return filepath.Join(folder, "loadstone", "config.yaml"), false
}

// readConfig returns what the configuration file adds to the parser.
func readConfig(args []string) ([]kong.Option, error) {
	path, named := configPath(args)
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if !named && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := terminal.ReadBounded("The configuration file", path, maxConfigBytes)
	if err != nil {
		return nil, err
	}
	c := config{path: path}
	if err := yaml.Unmarshal(text, &c.values); err != nil {
		return nil, c.wrong(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: "), configHint)
	}
	if runtime.GOOS != "windows" && info != nil && info.Mode().Perm()&0o077 != 0 && c.hasSecret(c.values) {
		return nil, c.wrong("it has a token or a password, and other users may read it", "chmod 600 "+path)
	}
	return []kong.Option{kong.Resolvers(c)}, nil
}

// config is a configuration file: flags by name, and below the name of a command those of that command.
type config struct {
	path   string
	values map[string]any
}

func (c config) wrong(what, hint string) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The configuration file %s cannot be used: %s.",
		c.path, what), Hint: hint}
}

// hasSecret reports whether a flag of the file holds a secret itself.
func (c config) hasSecret(values map[string]any) bool {
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok {
			if c.hasSecret(inner) {
				return true
			}
			continue
		}
		if secretValue(value) {
			return true
		}
		for _, secret := range []string{"token", "password", "secret", "key", "url", "join"} {
			if name == secret || strings.HasSuffix(name, "-"+secret) && !slices.Contains([]string{"public-url", "tls-key",
				"nodes-key", "query-key", "grafana-url"}, name) {
				return true
			}
		}
	}
	return false
}

// passwords finds those of connection strings: user:password@ of an address, and password=… of a list of settings.
var passwords = regexp.MustCompile(`(?i)[^\s/:@]*:[^\s/@]+@|(password|passwd|pwd|secret|token|private_?key)\s*=\s*\S`)

// secretValue reports whether a value has a password in it, whatever its flag is called.
func secretValue(value any) bool {
	switch v := value.(type) {
	case string:
		return passwords.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, secretValue)
	}
	return false
}

// Validate implements kong.Resolver: every name is one of a flag or a command.
func (c config) Validate(app *kong.Application) error { return c.check(app.Node, c.values, "") }

func (c config) check(node *kong.Node, values map[string]any, prefix string) error {
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok {
			i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name && !n.Hidden })
			if i < 0 {
				return c.wrong(fmt.Sprintf("%s%s is no command", prefix, name), configHint)
			}
			if err := c.check(node.Children[i], inner, prefix+name+"."); err != nil {
				return err
			}
			continue
		}
		if !hasFlag(node, name) {
			return c.wrong(fmt.Sprintf("%s%s is no flag", prefix, name), "loadstone help COMMAND lists the flags")
		}
	}
	return nil
}

// hasFlag reports whether a command, or one below it, has a flag.
func hasFlag(node *kong.Node, name string) bool {
	return name != "help" && name != "version" && name != "config" &&
		(slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == name }) ||
			slices.ContainsFunc(node.Children, func(n *kong.Node) bool { return hasFlag(n, name) }))
}

// Resolve implements kong.Resolver. A variable of the environment comes before the file, and so does a flag whose
// value is the file of this one, or the other way round.
func (c config) Resolve(k *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	partner, isFile := strings.CutSuffix(flag.Name, "-file")
	if !isFile {
		partner = flag.Name + "-file"
	}
	var at []string
	for _, p := range k.Path {
		if p.Command != nil {
			at = append(at, p.Command.Name)
		}
		if p.Flag != nil && p.Flag.Name == partner && !p.Resolved {
			return nil, nil
		}
		for _, f := range p.Flags {
			if (f == flag || f.Name == partner) && slices.ContainsFunc(f.Envs, isSet) {
				return nil, nil
			}
		}
	}
	var found any
	values := c.values
	for i := 0; ; i++ { // what stands below a command comes before what stands above
		if value, ok := values[flag.Name]; ok {
			if _, command := value.(map[string]any); !command {
				found = value
			}
		}
		if i == len(at) {
			break
		}
		inner, ok := values[at[i]].(map[string]any)
		if !ok {
			break
		}
		values = inner
	}
	switch v := found.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	default:
		return fmt.Sprint(v), nil
	}
}

func isSet(variable string) bool { _, set := os.LookupEnv(variable); return set }
