package main

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/params"
)

// The operations, in the order in which proportions are added up.
const (
	opRead = iota
	opUpdate
	opInsert
	opScan
	opModify
	numOps
)

var operations = [...]string{"read", "update", "insert", "scan", "read_modify_write"}

// The ways to choose a record.
const (
	asWorkload = iota
	zipfian
	uniform
	latest
	hotspot
	exponential
	sequential
)

var (
	workloads           = []string{"A", "B", "C", "D", "E", "F", "custom"}
	distributions       = []string{"workload", "zipfian", "uniform", "latest", "hotspot", "exponential", "sequential"}
	lengthDistributions = []string{"constant", "uniform", "zipfian"}
	scanDistributions   = []string{"uniform", "zipfian"}
	insertOrders        = []string{"hashed", "ordered"}
	modifies            = []string{"transaction", "statements"}
)

// mixes are the core workloads A to F.
var mixes = [...][numOps]float64{
	{opRead: 0.5, opUpdate: 0.5},
	{opRead: 0.95, opUpdate: 0.05},
	{opRead: 1},
	{opRead: 0.95, opInsert: 0.05},
	{opScan: 0.95, opInsert: 0.05},
	{opRead: 0.5, opModify: 0.5},
}

const (
	workloadD = 3
	custom    = 6
	ordered   = 1
	// inTransaction is the first of modifies.
	inTransaction = 0
)

type options struct {
	mix                        [numOps]float64 // sums to 1
	custom                     bool            // mix is of the user's own
	distribution               int
	records, operations, first int64
	fieldCount                 int64
	fieldLength, minField      int64
	fieldLengths               int
	readAll, writeAll          bool
	minScan, maxScan           int64
	scanLengths                int
	insertOrder, modify        int
	padding                    int64
	hotData, hotOperations     float64
}

func readOptions(doc *jsondoc.Value) (options, error) {
	o := options{fieldCount: 10, fieldLength: 100, minField: 1, readAll: true, minScan: 1, maxScan: 100, padding: 1,
		hotData: 0.2, hotOperations: 0.8}
	workload := 0
	r := params.Read(doc)
	r.Choice("workload", workloads, &workload)
	shares := r.Object("proportions")
	for i, name := range operations {
		shares.Float(name, 0, 1_000_000, &o.mix[i])
	}
	r.Join(shares)
	r.Choice("request_distribution", distributions, &o.distribution)
	r.Int("record_count", 0, 1e12, &o.records)
	r.Int("operation_count", 0, 1e12, &o.operations)
	r.Int("field_count", 1, 100, &o.fieldCount)
	r.Int("field_length", 1, 65_536, &o.fieldLength)
	r.Int("min_field_length", 1, 65_536, &o.minField)
	r.Choice("field_length_distribution", lengthDistributions, &o.fieldLengths)
	r.Bool("read_all_fields", &o.readAll)
	r.Bool("write_all_fields", &o.writeAll)
	r.Int("min_scan_length", 1, 10_000, &o.minScan)
	r.Int("max_scan_length", 1, 10_000, &o.maxScan)
	r.Choice("scan_length_distribution", scanDistributions, &o.scanLengths)
	r.Choice("insert_order", insertOrders, &o.insertOrder)
	r.Choice("read_modify_write", modifies, &o.modify)
	r.Int("zero_padding", 1, 100, &o.padding)
	r.Int("first_new_key", 0, 1e12, &o.first)
	r.Float("hotspot_data_fraction", 0, 1, &o.hotData)
	r.Float("hotspot_operation_fraction", 0, 1, &o.hotOperations)
	if err := r.Done(); err != nil {
		return o, err
	}
	if o.minField > o.fieldLength {
		return o, errors.New("min_field_length is above field_length")
	}
	if o.minScan > o.maxScan {
		return o, errors.New("min_scan_length is above max_scan_length")
	}
	sum := 0.0
	for _, share := range o.mix {
		sum += share
	}
	switch {
	case workload != custom && sum > 0:
		return o, errors.New("proportions are for the workload custom: the workload " + workloads[workload] + " has its own")
	case workload != custom:
		o.mix = mixes[workload]
	case sum == 0:
		return o, errors.New("the workload custom needs proportions: give at least one operation a share above 0")
	default:
		o.custom = true
		for i := range o.mix {
			o.mix[i] /= sum
		}
	}
	if o.distribution == asWorkload {
		o.distribution = zipfian
		if workload == workloadD {
			o.distribution = latest
		}
	}
	return o, nil
}
