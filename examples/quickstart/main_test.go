package main

func Example() {
	main()
	// Output:
	// reading the order
	// error: <nil>
}
