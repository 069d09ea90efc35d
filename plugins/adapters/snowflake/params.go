package snowflake

import (
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/params"
)

const (
	keyParam = `"key":{"title":"Key columns","description":"Key columns of an existing table without a declared primary key. They should be unique.","type":"array","maxItems":16,"items":{"type":"string","minLength":1,"maxLength":255}}`
	searched = `"search_optimization":{"title":"Search optimization","description":"Adds search optimization on the key of a new table (Enterprise edition).","type":"boolean","default":false}`
	loading  = `"load_warehouse":{"title":"Warehouse for loading","description":"A standard warehouse that creates and fills a new table, if the target's is interactive.","type":"string","minLength":1,"maxLength":255}`
	columns  = `"type":"array","minItems":1,"maxItems":16,"items":{"type":"string","minLength":1,"maxLength":255}`
)

// schemas are the parameters (target.params) of each type, as JSON Schemas.
var schemas = [...]string{
	Standard: `{"type":"object","additionalProperties":false,"properties":{
"cluster_by":{"title":"Clustering key","description":"Clustering key (CLUSTER BY) of a new table. Default: by key, as loaded.",` + columns + `},
` + loading + `,
"transient":{"title":"Transient","description":"Makes a new table transient: no Fail-safe, and one day of Time Travel at most.","type":"boolean","default":false},
` + searched + `,
` + sdk.KeySampleParameter + `,
` + keyParam + `}}`,
	Hybrid: `{"type":"object","additionalProperties":false,"properties":{
"indexes":{"title":"Secondary indexes","description":"Indexes of a new table, beside those that the workload declares: [{\"columns\": [\"customer_id\"], \"include\": [\"status\"]}].","type":"array","maxItems":64,
"items":{"type":"object","additionalProperties":false,"required":["columns"],"properties":{
"columns":{"title":"Columns","description":"What the index finds rows by.",` + columns + `},
"include":{"title":"Included columns","description":"Columns that are kept in the index, so that a query for them need not read the row.",` + columns + `}}}},
` + loading + `,
` + sdk.KeySampleParameter + `}}`,
	Interactive: `{"type":"object","additionalProperties":false,"properties":{
"cluster_by":{"title":"Clustering key","description":"Clustering key of a new table: the columns that queries filter by. Default: the key.",` + columns + `},
` + loading + `,
` + searched + `,
` + sdk.KeySampleParameter + `,
` + keyParam + `}}`,
}

// index is a secondary index that the template asks for.
type index struct{ columns, include []string }

// options are the parameters of the adapter.
type options struct {
	clusterBy, key    []string
	transient, search bool
	indexes           []index
	loadWarehouse     string
	keySample         int64
}

// readOptions reads params; the host has checked them against the schema.
func readOptions(req *jsondoc.Value) (options, error) {
	var o options
	r := params.At(req.Get("params"), "target.params")
	o.clusterBy = r.Value("cluster_by").Strings()
	o.key = r.Value("key").Strings()
	r.Bool("transient", &o.transient)
	r.Bool("search_optimization", &o.search)
	r.Text("load_warehouse", &o.loadWarehouse)
	o.keySample = sdk.DefaultKeySample
	r.Int("key_sample", 1000, 5_000_000, &o.keySample)
	list := r.Value("indexes")
	for i := 0; i < list.Len(); i++ {
		o.indexes = append(o.indexes,
			index{columns: list.At(i).Get("columns").Strings(), include: list.At(i).Get("include").Strings()})
	}
	return o, r.Done()
}
