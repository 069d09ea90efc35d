// This part is the part of memstore about sinks of continuous queries, which lie in a catalog beside it.

package fake

// Catalog tells which sinks write to a connection.
type Catalog interface {
	// Writing calls do with their names, in their order, and lets none be made or dropped until it returns. Its error
	// is that of do.
	Writing(connectionID string, do func(sinks []string) error) error
}

// Beside is the catalog beside a store; the zero value has none.
type Beside struct{ catalog Catalog }

// BesideCatalog names the catalog. It is called before the store is used.
func (b *Beside) BesideCatalog(c Catalog) { b.catalog = c }

// Writing is Catalog.Writing; without a catalog there are no sinks.
func (b *Beside) Writing(connectionID string, do func(sinks []string) error) error {
	if b.catalog == nil {
		return do(nil)
	}
	return b.catalog.Writing(connectionID, do)
}
