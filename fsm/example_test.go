package fsm_test

import (
	"errors"
	"fmt"

	"pgfsm/fsm"
)

// Letters are posted once, and only with a stamp.
func ExampleCompile() {
	stamped := fsm.Guard[int]{Name: "stamped", Why: "A letter without a stamp comes back.", Allow: func(stamps int) error {
		if stamps < 1 {
			return errors.New("there is no stamp on it")
		}
		return nil
	}}
	machine, err := fsm.Compile(fsm.Table[int]{
		Name: "a letter",
		Places: []fsm.Place{
			{State: "written", Established: "it says what it should"},
			{State: "posted", Established: "it is on its way"},
			{State: "delivered", Established: "it is there", Terminal: true},
		},
		Rows: []fsm.Row[int]{
			{From: "written", On: "post", Guard: stamped, To: "posted", Why: "Somebody shall read it."},
			{From: "posted", On: "deliver", Guard: stamped, To: "delivered", Why: "It was brought."},
		},
		Claims: fsm.Claims{Effects: []fsm.Effect{{State: "posted", On: "post"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(machine.Fire(1, "written", "post"))
	fmt.Println(machine.Fire(0, "written", "post"))
	// Output:
	// posted <nil>
	// written fsm: "post" refused in state "written" by guard "stamped": there is no stamp on it
}
