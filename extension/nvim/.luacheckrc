std = "luajit"
globals = { "vim" }
max_line_length = false
exclude_files = { "lua/pillion/protocol.lua" }
