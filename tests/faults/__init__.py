"""One promise, one test: what each bad input and each fault gets, by its number.

``pytest tests -k fault_24`` runs the test of fault 24; its docstring says the promise and,
after "In part:", what is not kept. The table is checked by ``test_table.py``.

====  =========  =====================
  nr  kept       module
====  =========  =====================
   1  in part    test_graph_input
   2  whole      test_graph_input
   3  whole      test_graph_input
   4  whole      test_graph_input
   5  whole      test_graph_input
   6  whole      test_graph_input
   7  whole      test_graph_input
   8  whole      test_graph_input
   9  whole      test_graph_input
  10  whole      test_graph_input
  11  whole      test_graph_input
  12  whole      test_graph_input
  13  whole      test_graph_input
  14  whole      test_graph_input
  15  whole      test_graph_input
  16  whole      test_graph_input
  17  whole      test_graph_input
  18  whole      test_graph_input
  19  whole      test_numerics
  20  whole      test_numerics
  21  in part    test_numerics
  22  whole      test_numerics
  23  whole      test_numerics
  24  whole      runs.test_interrupted
  25  whole      test_process_and_disk
  26  whole      test_process_and_disk
  27  in part    runs.test_interrupted
  28  whole      test_process_and_disk
  29  whole      runs.test_interrupted
  30  whole      runs.test_interrupted
  31  whole      test_process_and_disk
  32  whole      test_process_and_disk
  33  whole      test_process_and_disk
  34  whole      search.test_verb
  35  whole      train.test_ranks
  36  whole      test_security
  37  whole      test_security
  38  in part    test_security
  39  whole      test_security
  40  whole      test_security
  41  whole      test_found_since
  42  whole      test_found_since
  43  whole      test_found_since
  44  whole      test_found_since
  45  whole      test_found_since
  46  whole      test_found_since
  47  whole      test_found_since
  48  whole      test_found_since
  49  whole      test_found_since
  50  in part    test_found_since
====  =========  =====================
"""
