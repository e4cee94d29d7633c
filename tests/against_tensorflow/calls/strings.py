"""Strings: functions of `tf.strings`, and other ops on tensors of strings."""

CALLS = """
# ---- numbers and strings
tf.strings.as_string([1, -2, 300]) #: float32
tf.strings.as_string([1.5, float("inf"), float("nan")]) #: float32
tf.strings.as_string([1.5, 2.25], precision=1) #: float32
tf.strings.as_string([1.5], scientific=True) #: float32
tf.strings.as_string([1.5], shortest=True) #: float32
tf.strings.as_string([1, 22], width=4, fill="0") #: float32
tf.strings.as_string([True, False]) #: float32
tf.strings.as_string([1 + 2j]) #: float32
tf.as_string([3]) #: float32
tf.strings.to_number(["1.5", "-2", "1e3", "inf"]) #: float32
tf.strings.to_number(["12", "-7"], tf.int32) #: float32
tf.strings.to_number(["1.5"], tf.float64) #: float32
tf.strings.to_number("abc") #: float32
tf.strings.to_number("") #: float32
tf.strings.to_number("1.5", tf.int32) #: float32
tf.strings.to_number("99999999999", tf.int32) #: float32
# ---- joining and splitting
tf.strings.join(["a", ["b", "c"]]) #: float32
tf.strings.join([["a", "b"], ["c", "d"]], separator="-") #: float32
tf.strings.join([["a", "b"], ["c", "d", "e"]]) #: float32
tf.strings.reduce_join([["a", "b"], ["c", "d"]]) #: float32
tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=0, separator="+") #: float32
tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1, keepdims=True) #: float32
tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=2) #: float32
tf.strings.split(["a b  c", "", " d "]) #: float32
tf.strings.split("a,b,,c", ",") #: float32
tf.strings.split(["a,b,c"], ",", maxsplit=1) #: float32
tf.strings.split([["a b"], ["c"]]) #: float32
tf.strings.bytes_split(["ab", ""]) #: float32
tf.strings.ngrams(["a", "b", "c", "d"], 2) #: float32
tf.strings.ngrams(["a", "b", "c"], [1, 3], separator="_", pad_values=("<", ">")) #: float32
tf.strings.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, separator=":") #: float32
tf.strings.format("a {} b {}", (1, "x")) #: float32
tf.strings.format("no placeholder", [1, 2]) #: float32
# ---- parts
tf.strings.substr(["hello", "world"], 1, 3) #: float32
tf.strings.substr(["hello", "world"], [1, 2], [3, 2]) #: float32
tf.strings.substr(["hello"], -3, 2) #: float32
tf.strings.substr(["hi"], 5, 1) #: float32
tf.strings.substr(["h\\u00e9llo"], 1, 1, unit="UTF8_CHAR") #: float32
tf.strings.length(["", "abc", "\\u00e9"]) #: float32
tf.strings.length(["\\u00e9\\u00e8"], unit="UTF8_CHAR") #: float32
tf.strings.lower(["AbC", "\\u00c9"]) #: float32
tf.strings.lower(["AbC", "\\u00c9"], encoding="utf-8") #: float32
tf.strings.upper(["AbC"]) #: float32
tf.strings.strip([" a ", "\\tb\\n"]) #: float32
tf.strings.regex_replace(["a1b22"], "[0-9]+", "#") #: float32
tf.strings.regex_replace(["a1b22"], "[0-9]", "#", replace_global=False) #: float32
tf.strings.regex_replace(["John Smith"], r"(\\w+) (\\w+)", r"\\2 \\1") #: float32
tf.strings.regex_full_match(["abc", "abd", "xabc"], "ab[cd]") #: float32
tf.strings.regex_full_match("a", "(") #: float32
# ---- hashes
tf.strings.to_hash_bucket_fast(["hello", "", "a much longer string than thirty-two bytes, and than sixty-four of them"], 1000003) #: float32
tf.strings.to_hash_bucket(["hello", "world"], 97) #: float32
tf.strings.to_hash_bucket_strong(["hello", "", "world"], 1000, [1, 2]) #: float32
tf.strings.to_hash_bucket_fast(["a"], 0) #: float32
# ---- Unicode
tf.strings.unicode_decode(["h\\u00e9", "a"], "UTF-8") #: float32
tf.strings.unicode_decode([b"a\\xff"], "UTF-8") #: float32
tf.strings.unicode_decode([b"a\\xff"], "UTF-8", errors="strict") #: float32
tf.strings.unicode_decode([b"a\\xffb"], "UTF-8", errors="ignore") #: float32
tf.strings.unicode_decode_with_offsets(["h\\u00e9l"], "UTF-8") #: float32
tf.strings.unicode_encode([[72, 233], [97, 98]], "UTF-8") #: float32
tf.strings.unicode_encode([72, 233], "UTF-16-BE") #: float32
tf.strings.unicode_split(["h\\u00e9", "ab"], "UTF-8") #: float32
tf.strings.unicode_split_with_offsets(["h\\u00e9"], "UTF-8") #: float32
tf.strings.unicode_transcode(["h\\u00e9"], "UTF-8", "UTF-16-BE") #: float32
tf.strings.unicode_script([97, 945, 31070]) #: float32
# ---- other ops
tf.equal(["a", "b"], "a") #: float32
tf.concat([["a"], ["b", "c"]], 0) #: float32
tf.gather(["a", "b", "c"], [2, 0]) #: float32
tf.where([True, False], ["a", "b"], "z") #: float32
tf.unique_with_counts(["b", "a", "b"]) #: float32
tf.sort(["b", "a"]) #: float32
tf.math.add("a", ["b", "c"]) #: float32
tf.reverse(["a", "b"], [0]) #: float32
tf.io.decode_base64(tf.io.encode_base64(["hello", "\\u00e9"])) #: float32
tf.io.decode_raw(["\\x01\\x02\\x03\\x04"], tf.uint8) #: float32
tf.io.decode_csv(["1,2.5,x", "3,,y"], [0, 1.0, ""]) #: float32
tf.io.decode_csv(["1,2"], [0, 1.0, ""]) #: float32
tf.io.parse_tensor(tf.io.serialize_tensor([[1.0, 2.0]]), tf.float32) #: float32
"""
