package snowsim

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// The forms of statements about the user's stage (@~) that are understood; others are refused as not simulated.
var (
	ours = regexp.MustCompile(`(?is)^\s*(PUT|COPY\s+INTO|REMOVE|RM|LIST|LS)\s`)
	put  = regexp.MustCompile(
		`(?is)^\s*PUT\s+'?(file://[^\s']+)'?\s+'?@~(?:/([^\s']*))?'?((?:\s+(?:AUTO_COMPRESS\s*=\s*FALSE|` +
			`OVERWRITE\s*=\s*TRUE|SOURCE_COMPRESSION\s*=\s*NONE))*)\s*;?\s*$`,
	)
	copyInto = regexp.MustCompile(
		`(?is)^\s*COPY\s+INTO\s+([\w$."]+)\s+FROM\s+'?@~/([^\s']*)'?\s+FILES\s*=\s*\(([^)]*)\)\s+` +
			`FILE_FORMAT\s*=\s*\(\s*TYPE\s*=\s*PARQUET([^)]*)\)\s+MATCH_BY_COLUMN_NAME\s*=\s*CASE_INSENSITIVE` +
			`((?:\s+(?:ON_ERROR\s*=\s*ABORT_STATEMENT|FORCE\s*=\s*TRUE))*)\s*;?\s*$`)
	logicalType = regexp.MustCompile(`(?is)^\s*,?\s*USE_LOGICAL_TYPE\s*=\s*(TRUE|FALSE)\s*$`)
	listed      = regexp.MustCompile(`(?is)^\s*(REMOVE|RM|LIST|LS)\s+'?@~(?:/([^\s']*))?'?\s*;?\s*$`)
)

// stageStatement is the effect of a statement about stages.
type stageStatement struct {
	// data is added to the answer of a PUT; the driver does the rest.
	data map[string]any
	// insert and bindings replace a COPY INTO.
	insert   string
	bindings map[string]protocol.Binding
	// columns and rows are the answer of LIST and REMOVE.
	columns []protocol.Column
	rows    [][]any
}

// read executes a user's statement about stages; nil is any other statement. host is the address of this machine by
// which the client has come.
func (a *stageArea) read(user, client, host, sql string) (*stageStatement, error) {
	if !ours.MatchString(sql) {
		return nil, nil
	}
	if m := put.FindStringSubmatch(sql); m != nil {
		return a.put(user, client, host, m[1], m[2], m[3])
	}
	if m := copyInto.FindStringSubmatch(sql); m != nil {
		return a.copy(user, m[1], m[2], m[3], m[4], m[5])
	}
	if m := listed.FindStringSubmatch(sql); m != nil {
		return a.list(user, m[2], strings.HasPrefix(strings.ToUpper(m[1]), "R")), nil
	}
	return nil, protocol.NotSimulated("stages besides @~, and other forms of PUT, COPY INTO, LIST and REMOVE")
}

// userPrefix is where a user's stage is in the cloud's storage.
func userPrefix(user string) string { return fmt.Sprintf("stages/%x/", user) }

func (a *stageArea) put(user, client, host, from, path, options string) (*stageStatement, error) {
	folder := userPrefix(user) + strings.Trim(path, "/")
	info, err := a.issue(client, host, userPrefix(user), strings.TrimSuffix(folder, "/")+"/")
	if err != nil {
		return nil, err
	}
	options = strings.ToUpper(options)
	// Of the official drivers that for Go wants a number, and that for Python (5) a text.
	key := any("1")
	if client == "Go" {
		key = 1
	}
	return &stageStatement{data: map[string]any{
		"command":           "UPLOAD",
		"operation":         "Node",
		"src_locations":     []string{strings.TrimPrefix(from, "file://")},
		"parallel":          4,
		"threshold":         200 << 20,
		"autoCompress":      !strings.Contains(options, "AUTO_COMPRESS"),
		"overwrite":         strings.Contains(options, "OVERWRITE"),
		"sourceCompression": "none",
		"encryptionMaterial": map[string]any{
			"queryStageMasterKey": a.masterKey,
			"queryId":             "01c00000-0000-0000-0000-000000000001",
			"smkId":               key,
		},
		"clientShowEncryptionParameter": true,
		"stageInfo":                     info,
	}}, nil
}

// list lists files, or removes them: all whose names begin with path, which is no folder but a text.
func (a *stageArea) list(user, path string, remove bool) *stageStatement {
	s := &stageStatement{columns: []protocol.Column{protocol.Text("name"), protocol.Number("size"), protocol.Text("md5"),
		protocol.Text("last_modified")}}
	if remove {
		s.columns = []protocol.Column{protocol.Text("name"), protocol.Text("result")}
	}
	prefix := userPrefix(user)
	for _, f := range a.files(prefix+strings.TrimLeft(path, "/"), remove) {
		name := strings.TrimPrefix(f.path, prefix)
		if remove {
			s.rows = append(s.rows, []any{name, "removed"})
			continue
		}
		s.rows = append(
			s.rows,
			[]any{name, int64(len(f.body)), f.md5(), f.stored.UTC().Format("Mon, 2 Jan 2006 15:04:05 GMT")},
		)
	}
	return s
}

func (a *stageArea) copy(user, table, path, list, format, options string) (*stageStatement, error) {
	if !strings.Contains(strings.ToUpper(options), "FORCE") {
		return nil, protocol.NotSimulated("COPY INTO without FORCE = TRUE: what was loaded before is not remembered")
	}
	c := &parquetColumns{types: map[string]string{}, values: map[string][]*string{}}
	if m := logicalType.FindStringSubmatch(format); m != nil {
		c.logical = strings.EqualFold(m[1], "TRUE")
	} else if strings.TrimSpace(format) != "" {
		return nil, protocol.NotSimulated("options of FILE_FORMAT besides USE_LOGICAL_TYPE")
	}
	if path != "" {
		path = strings.Trim(path, "/") + "/"
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.Trim(strings.TrimSpace(name), "'")
		text, found, err := a.open(userPrefix(user) + path + name)
		switch {
		case !found:
			return nil, &protocol.Error{Code: "091016", State: "22000",
				Message: fmt.Sprintf("Remote file '@~/%s%s' was not found.", path, name)}
		case err == nil:
			err = c.read(text)
		}
		if err != nil {
			return nil, &protocol.Error{Code: "100152", State: "22000",
				Message: fmt.Sprintf("Error parsing the parquet file '%s': %v.", name, err)}
		}
	}
	s := &stageStatement{bindings: map[string]protocol.Binding{}}
	marks := make([]string, len(c.names))
	for i, name := range c.names {
		text, err := json.Marshal(c.values[name])
		if err != nil {
			return nil, fmt.Errorf("reading a column: %w", err)
		}
		marks[i] = "?"
		s.bindings[strconv.Itoa(i+1)] = protocol.Binding{Type: c.types[name], Value: text}
	}
	s.insert = "INSERT INTO " + table + " (" + strings.Join(c.names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	return s, nil
}
