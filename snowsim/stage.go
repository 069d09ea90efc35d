package snowsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// stageArea holds the users' stages (@~) in a folder that is created on first use. The answer to a PUT makes the
// driver store files there itself, as for an account whose stages are local files; COPY INTO reads Parquet from there
// by the names of columns. It is safe for concurrent use.
type stageArea struct {
	mu  sync.Mutex
	dir string
}

func (a *stageArea) folder() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.dir == "" {
		if a.dir, err = os.MkdirTemp("", "snowsim-stages-"); err != nil {
			return "", fmt.Errorf("making a folder for stages: %w", err)
		}
	}
	return a.dir, nil
}

// close removes the files.
func (a *stageArea) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir != "" {
		_ = os.RemoveAll(a.dir)
		a.dir = ""
	}
}

// The forms that are understood; others are refused as not simulated.
var (
	ours = regexp.MustCompile(`(?is)^\s*(PUT|COPY\s+INTO|REMOVE|RM)\s`)
	put  = regexp.MustCompile(
		`(?is)^\s*PUT\s+'?(file://[^\s']+)'?\s+'?@~/([^\s']*)'?((?:\s+(?:AUTO_COMPRESS\s*=\s*FALSE|` +
			`OVERWRITE\s*=\s*TRUE|SOURCE_COMPRESSION\s*=\s*NONE))*)\s*;?\s*$`,
	)
	copyInto = regexp.MustCompile(
		`(?is)^\s*COPY\s+INTO\s+([\w$."]+)\s+FROM\s+'?@~/([^\s']*)'?\s+FILES\s*=\s*\(([^)]*)\)\s+` +
			`FILE_FORMAT\s*=\s*\(\s*TYPE\s*=\s*PARQUET[^)]*\)\s+MATCH_BY_COLUMN_NAME\s*=\s*CASE_INSENSITIVE` +
			`((?:\s+(?:ON_ERROR\s*=\s*ABORT_STATEMENT|FORCE\s*=\s*TRUE))*)\s*;?\s*$`)
	remove = regexp.MustCompile(`(?is)^\s*(?:REMOVE|RM)\s+'?@~/([^\s']*)'?\s*;?\s*$`)
)

// stageStatement is the effect of a statement about stages.
type stageStatement struct {
	// data is added to the answer of a PUT; the driver does the rest.
	data map[string]any
	// insert and bindings replace a COPY INTO.
	insert   string
	bindings map[string]protocol.Binding
	// removed lists the files that REMOVE deleted.
	removed []string
}

// read executes a user's statement about stages; nil is any other statement.
func (a *stageArea) read(user, sql string) (*stageStatement, error) {
	if !ours.MatchString(sql) {
		return nil, nil
	}
	if m := put.FindStringSubmatch(sql); m != nil {
		return a.put(user, m[1], m[2], m[3])
	}
	if m := copyInto.FindStringSubmatch(sql); m != nil {
		return a.copy(user, m[1], m[2], m[3], m[4])
	}
	if m := remove.FindStringSubmatch(sql); m != nil {
		return a.remove(user, m[1])
	}
	return nil, protocol.NotSimulated("stages besides @~, and other forms of PUT, COPY INTO and REMOVE")
}

// place is a file or folder of a user's stage.
func (a *stageArea) place(user, path string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash("x/"+path)) || strings.Contains(path, "..") {
		return "", &protocol.Error{
			Code:    "001003",
			State:   "42000",
			Message: fmt.Sprintf("Invalid path '%s' of a stage.", path),
		}
	}
	dir, err := a.folder()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, fmt.Sprintf("%x", user), filepath.FromSlash(path)), nil
}

func (a *stageArea) put(user, from, path, options string) (*stageStatement, error) {
	dir, err := a.place(user, path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder of a stage: %w", err)
	}
	options = strings.ToUpper(options)
	return &stageStatement{data: map[string]any{"command": "UPLOAD",
		"src_locations": []string{strings.TrimPrefix(from, "file://")},
		"parallel":      4, "threshold": 200 << 20, "autoCompress": !strings.Contains(options, "AUTO_COMPRESS"),
		"overwrite": strings.Contains(options, "OVERWRITE"), "sourceCompression": "none",
		"stageInfo": map[string]any{"locationType": "LOCAL_FS", "location": dir, "path": path}}}, nil
}

func (a *stageArea) remove(user, path string) (*stageStatement, error) {
	at, err := a.place(user, path)
	if err != nil {
		return nil, err
	}
	s := &stageStatement{}
	err = filepath.WalkDir(at, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			s.removed = append(s.removed, filepath.Base(name))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing a stage: %w", err)
	}
	return s, os.RemoveAll(at)
}

func (a *stageArea) copy(user, table, path, list, options string) (*stageStatement, error) {
	if !strings.Contains(strings.ToUpper(options), "FORCE") {
		return nil, protocol.NotSimulated("COPY INTO without FORCE = TRUE: what was loaded before is not remembered")
	}
	c := &parquetColumns{types: map[string]string{}, values: map[string][]*string{}}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.Trim(strings.TrimSpace(name), "'")
		at, err := a.place(user, path+"/"+name)
		if err != nil {
			return nil, err
		}
		if err := c.read(at); errors.Is(err, fs.ErrNotExist) {
			return nil, &protocol.Error{Code: "091016", State: "22000",
				Message: fmt.Sprintf("Remote file '@~/%s/%s' was not found.", strings.Trim(path, "/"), name)}
		} else if err != nil {
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

// parquetColumns are those of files, as array binds have them.
type parquetColumns struct {
	names  []string
	types  map[string]string
	values map[string][]*string
}

func (c *parquetColumns) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(strings.NewReader(string(text)), int64(len(text)))
	if err != nil {
		return err
	}
	fields := file.Schema().Fields()
	kinds := make([]string, len(fields))
	for i, f := range fields {
		name := strings.ToUpper(f.Name())
		if kinds[i] = parquetType(f); kinds[i] == "" {
			return fmt.Errorf("the column %s is of a type that is not simulated", name)
		}
		if c.types[name] == "" {
			c.names = append(c.names, name)
		}
		c.types[name] = kinds[i]
	}
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, 256)
		for {
			n, err := rows.ReadRows(buffer)
			for _, row := range buffer[:n] {
				for _, v := range row {
					name := strings.ToUpper(fields[v.Column()].Name())
					c.values[name] = append(c.values[name], parquetText(kinds[v.Column()], v))
				}
			}
			if err != nil || n == 0 {
				break
			}
		}
		_ = rows.Close() // only read
	}
	return nil
}

func parquetType(f parquet.Field) string {
	if !f.Leaf() || f.Repeated() {
		return ""
	}
	if l := f.Type().LogicalType(); l != nil {
		if t, ok := l.Value.(*format.TimestampType); ok {
			if t.Unit.Value.Duration() != time.Microsecond {
				return ""
			}
			return "timestamp_ntz"
		}
	}
	switch f.Type().Kind() {
	case parquet.Boolean:
		return "boolean"
	case parquet.Int32, parquet.Int64:
		return "fixed"
	case parquet.Float, parquet.Double:
		return "real"
	case parquet.ByteArray:
		return "text"
	}
	return ""
}

func parquetText(kind string, v parquet.Value) *string {
	if v.IsNull() {
		return nil
	}
	var text string
	switch kind {
	case "timestamp_ntz":
		text = strconv.FormatInt(v.Int64(), 10) + "000"
	case "boolean":
		text = strconv.FormatBool(v.Boolean())
	case "fixed":
		text = v.String()
	case "real":
		text = strconv.FormatFloat(v.Double(), 'g', -1, 64)
	default:
		text = string(v.ByteArray())
	}
	return &text
}
