package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// document is a column as it is kept.
type document struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	NotNull bool   `json:"not_null,omitempty"`
}

// MarshalSchema writes columns as JSON, as a store keeps them.
func MarshalSchema(columns []column.Column) ([]byte, error) {
	list := []document{}
	for _, c := range columns {
		list = append(list, document{c.Name, c.Type.String(), c.NotNull})
	}
	return json.Marshal(list)
}

// UnmarshalSchema reads what MarshalSchema has written.
func UnmarshalSchema(text []byte) ([]column.Column, error) {
	var list []document
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	var columns []column.Column
	for _, d := range list {
		name, numbers, _ := strings.Cut(strings.TrimSuffix(d.Type, ")"), "(")
		var args []int64
		for n := range strings.SplitSeq(numbers, ",") {
			if n == "" {
				continue
			}
			arg, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading a schema: %w", err)
			}
			args = append(args, arg)
		}
		t, err := column.TypeNamed(name, args)
		if err != nil {
			return nil, fmt.Errorf("reading a schema: %w", err)
		}
		columns = append(columns, column.Column{Name: d.Name, Type: t, NotNull: d.NotNull})
	}
	return columns, nil
}

// MarshalConfig writes settings as JSON: those of the parser apart.
func MarshalConfig(c connector.Config) (own, parser []byte, err error) {
	parts := [2]map[string]any{{}, {}}
	for path, v := range c {
		if strings.HasPrefix(path, "PARSER.") {
			parts[1][path] = v
		} else {
			parts[0][path] = v
		}
	}
	if own, err = json.Marshal(parts[0]); err == nil {
		parser, err = json.Marshal(parts[1])
	}
	return own, parser, err
}

// UnmarshalConfig reads what MarshalConfig has written.
func UnmarshalConfig(parts ...[]byte) (connector.Config, error) {
	c := connector.Config{}
	for _, part := range parts {
		d := json.NewDecoder(bytes.NewReader(part))
		d.UseNumber()
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("reading settings: %w", err)
		}
	}
	for path, v := range c {
		n, is := v.(json.Number)
		if !is {
			continue
		}
		if whole, err := n.Int64(); err == nil {
			c[path] = whole
		} else if f, err := n.Float64(); err == nil {
			c[path] = f
		}
	}
	return c, nil
}
