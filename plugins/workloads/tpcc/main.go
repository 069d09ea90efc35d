// Command tpcc is the workload plugin of TPC-C, revision 5.11: nine tables and
// five transactions of a wholesale supplier. What the specification's application
// program does between two statements is done here by refs to earlier rows and by
// SQL, because a generator never sees a result; docs/reference/workloads.md lists each case.
package main

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

func init() { sdk.ServeWorkload(tpcc{}) }

func main() {}

type tpcc struct{}

// dialect is that in which the statements are written; those of Snowflake are made of them.
const (
	dialect          = "postgres"
	snowflakeDialect = "snowflake"
)

// The numbers of clause 1.2 and 4.3.
const (
	districtsPerWarehouse = 10
	specItems             = 100_000
	specCustomers         = 3_000 // of a district
)

// Manifest describes the plugin.
func (tpcc) Manifest() sdk.Manifest {
	p := defaults()
	return sdk.Manifest{
		Name: "tpcc", Version: "1.0.0", Title: "TPC-C", Author: "Loadstone",
		Description: "A wholesale supplier takes orders, payments and questions, and delivers: the nine tables and five " +
			"transactions of TPC-C 5.11. Results are not comparable with published, audited ones.",
		Parameters: parameterSchema,
		Tables:     p.tables(),
	}
}

const parameterSchema = `{
"$schema":"https://json-schema.org/draft/2020-12/schema",
"type":"object","additionalProperties":false,
"properties":{
"warehouses":{"title":"Warehouses","description":"Warehouses, each with half a million rows (about 100 MB). With fewer warehouses than connections they wait for each other. Has to match existing tables.",
"type":"integer","minimum":1,"maximum":100000,"default":1},
"terminal_times":{"title":"Keying and think times","description":"Keying and think times: 30 s on average for New-Order, 15 for Payment, 7 to 12 for the others. A connection is then a terminal; the specification has ten for each warehouse.",
"type":"boolean","default":false},
"weights":{"title":"Mix","description":"Transactions in the shuffled deck. The default is the specification's mix.",
"type":"object","additionalProperties":false,"minProperties":1,
"default":{"new_order":45,"payment":43,"order_status":4,"delivery":4,"stock_level":4},
"properties":{
"new_order":{"title":"New-Order","description":"Enters an order of 5 to 15 items; one of a hundred is rolled back.","type":"integer","minimum":0,"maximum":1000,"default":0},
"payment":{"title":"Payment","description":"Books a payment of a customer.","type":"integer","minimum":0,"maximum":1000,"default":0},
"order_status":{"title":"Order-Status","description":"Reads a customer's last order.","type":"integer","minimum":0,"maximum":1000,"default":0},
"delivery":{"title":"Delivery","description":"Delivers the oldest order of each of the ten districts of a warehouse.","type":"integer","minimum":0,"maximum":1000,"default":0},
"stock_level":{"title":"Stock-Level","description":"Counts the items of the last 20 orders that are running out.","type":"integer","minimum":0,"maximum":1000,"default":0}}},
"items":{"title":"Items","description":"Items on sale. TPC-C has 100 000.",
"type":"integer","minimum":100,"maximum":100000,"default":100000},
"customers_per_district":{"title":"Customers of a district","description":"Customers, and initial orders, of each district; a multiple of 10. TPC-C has 3000.",
"type":"integer","minimum":20,"maximum":3000,"multipleOf":10,"default":3000}
}}`

// The transactions in the order of the deck.
const (
	newOrder = iota
	payment
	orderStatus
	delivery
	stockLevel
	numTransactions
)

var transactionNames = [numTransactions]string{"new_order", "payment", "order_status", "delivery", "stock_level"}

type params struct {
	warehouses, items, customers int64
	terminalTimes                bool
	weights                      [numTransactions]int64
}

func defaults() params {
	return params{warehouses: 1, items: specItems, customers: specCustomers, weights: [...]int64{45, 43, 4, 4, 4}}
}

func readParams(doc *jsondoc.Value) (params, error) {
	p := defaults()
	if !doc.IsNull() && doc.Kind() != jsondoc.Object {
		return p, errors.New("params must be an object")
	}
	for _, name := range doc.Names() {
		if err := p.read(name, doc.Get(name)); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *params) read(name string, v *jsondoc.Value) error {
	switch name {
	case "warehouses":
		return readInt(name, v, 1, 100_000, &p.warehouses)
	case "items":
		return readInt(name, v, 100, specItems, &p.items)
	case "customers_per_district":
		if err := readInt(name, v, 20, specCustomers, &p.customers); err != nil {
			return err
		}
		if p.customers%10 != 0 {
			return errors.New(name + " must be a multiple of 10")
		}
		return nil
	case "terminal_times":
		if v.Kind() != jsondoc.Bool {
			return errors.New(name + " must be true or false")
		}
		p.terminalTimes = v.Bool()
		return nil
	case "weights":
		return p.readWeights(v)
	}
	return errors.New("unknown parameter " + strconv.Quote(name))
}

func (p *params) readWeights(v *jsondoc.Value) error {
	p.weights = [numTransactions]int64{}
	total := int64(0)
names:
	for _, name := range v.Names() {
		for i, known := range transactionNames {
			if known == name {
				if err := readInt("weights."+name, v.Get(name), 0, 1_000, &p.weights[i]); err != nil {
					return err
				}
				total += p.weights[i]
				continue names
			}
		}
		return errors.New("weights has no transaction " + strconv.Quote(name) +
			": new_order, payment, order_status, delivery, stock_level")
	}
	if total == 0 {
		return errors.New("all weights are 0: give at least one transaction a weight above 0")
	}
	return nil
}

func readInt(name string, v *jsondoc.Value, lo, hi int64, to *int64) error {
	n, ok := v.Int()
	if !ok || v.Kind() != jsondoc.Number || n < lo || n > hi {
		return errors.New(name + " must be a whole number from " + strconv.FormatInt(lo, 10) + " to " +
			strconv.FormatInt(hi, 10))
	}
	*to = n
	return nil
}
