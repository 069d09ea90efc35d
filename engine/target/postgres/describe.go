package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/target"
)

// describeTimeout bounds reading the catalog.
const describeTimeout = 5 * time.Second

// labels are those of an enumeration named by the type's oid, as a list in JSON; NULL of any other type.
func labels(oid string) string {
	return "(SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder)::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = " +
		oid + ")"
}

// columnsOf lists the columns that the user may read or write; of a domain it tells the type under it.
var columnsOf = `SELECT n.nspname::text, c.relname::text, a.attname::text,
 pg_catalog.format_type(b.oid, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END), ` + labels("b.oid") + `,
 CASE WHEN a.attgenerated <> '' OR a.attidentity = 'a' THEN 'always' WHEN a.atthasdef OR a.attidentity = 'd' THEN 'default' ELSE '' END,
 (EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum))::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
 JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE c.relkind IN ('r','p','v','m','f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
 AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE')
ORDER BY 1, 2, a.attnum LIMIT `

// Columns implements target.Describer.
func (d *database) Columns(ctx context.Context, most int) ([]target.DescribedColumn, error) {
	rs, err := d.Read(ctx, columnsOf+strconv.Itoa(most), describeTimeout)
	if err != nil {
		return nil, fmt.Errorf("listing columns: %w", err)
	}
	if err := shaped(rs, 7); err != nil {
		return nil, fmt.Errorf("listing columns: %w", err)
	}
	list := make([]target.DescribedColumn, 0, len(rs.Rows))
	for _, row := range rs.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i], _ = v.(string)
		}
		list = append(list, target.DescribedColumn{Schema: cells[0], Relation: cells[1], Name: cells[2],
			Type:      target.DescribedType{Name: cells[3], Values: readLabels(cells[4])},
			Generated: cells[5], Key: cells[6] == "true"})
	}
	return list, nil
}

// Parameters implements target.Describer.
func (d *database) Parameters(ctx context.Context, sql string) ([]target.DescribedType, error) {
	c, err := d.borrow(ctx)
	if err != nil {
		return nil, err
	}
	description, err := c.Prepare(ctx, "", executed(sql), nil)
	d.give(c)
	if err != nil {
		return nil, fmt.Errorf("describing a statement: %w", err)
	}
	list := make([]target.DescribedType, len(description.ParamOIDs))
	if len(list) == 0 {
		return list, nil
	}
	oids := make([]string, len(list))
	for i, oid := range description.ParamOIDs {
		oids[i] = strconv.FormatUint(uint64(oid), 10)
	}
	rs, err := d.Read(ctx, "SELECT pg_catalog.format_type(o, NULL), "+labels("o")+
		" FROM unnest($1::oid[]) WITH ORDINALITY AS p(o, n) ORDER BY n", describeTimeout, "{"+strings.Join(oids, ",")+"}")
	if err == nil {
		err = shaped(rs, 2)
	}
	if err != nil {
		return nil, fmt.Errorf("naming the types of parameters: %w", err)
	}
	for i := range min(len(list), len(rs.Rows)) {
		list[i].Name, _ = rs.Rows[i][0].(string)
		text, _ := rs.Rows[i][1].(string)
		list[i].Values = readLabels(text)
	}
	return list, nil
}

func readLabels(text string) []string {
	var list []string
	if text == "" || json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	return list
}
