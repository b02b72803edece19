-- The sidecar's process, and all that is bad.
local t = dofile(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/helper.lua")
local test, eq, match, wait = t.test, t.eq, t.match, t.wait

local function script(w, text)
  local path = w.project .. "/fake"
  t.write(path, "#!/bin/sh\n" .. text)
  vim.fn.setfperm(path, "rwxr-xr-x")
  return path
end

local function told(w)
  return table.concat(vim.tbl_map(function(x)
    return x.text
  end, w.told), "\n")
end

test("no binary: the message says what to do", function()
  local w = t.world(nil, {}, { cmd = "/no/such/pillion" })
  vim.cmd("Pillion hello")
  wait("the message", function()
    return #w.told > 0
  end)
  match("not an executable file", told(w))
  match("not running", require("pillion.status").winbar(t.session().view.buf))
end)

test("an old binary is named as one", function()
  local w = t.world(nil, {})
  require("pillion.config").options.cmd = script(w, 'echo "unknown command acp" >&2\nexit 2\n')
  vim.cmd("Pillion hello")
  wait("the message", function()
    return #w.told > 0
  end)
  match("ended at once with code 2: unknown command acp", told(w))
  match("old build", told(w))
end)

test("an agent that is not Pillion is refused", function()
  local w = t.world(nil, {})
  require("pillion.config").options.cmd = script(w, [[read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"other"}}}'; cat >/dev/null]])
  vim.cmd("Pillion hello")
  wait("the message", function()
    return #w.told > 0
  end)
  match("not Pillion", told(w))
end)

test("the plugin's release is that of the package", function()
  local package = vim.fn.json_decode(vim.fn.readfile(t.repo .. "/package.json"))
  eq(package.version, require("pillion.process").release)
end)

for _, c in ipairs({
  { "0.0.9", "older than this plugin", "fake upgrade" },
  { "0.2.0-dev.g1a2b3c", "newer than this plugin", "plugin manager" },
  { "0.1.7", nil },
  { "0.1.0-dev.g1a2b3c.dirty", nil },
  { "unknown", nil },
}) do
  test("a program of release " .. c[1] .. (c[2] and ": said with what to do, and it works all the same" or " is not worth a word"), function()
    local w = t.world({ "Fine." }, {})
    -- The real program, of which one word is changed on the way.
    require("pillion.config").options.cmd = script(w, ([[%s "$@" | sed -u 's/\("agentInfo":{[^}]*"version":"\)[^"]*/\1%s/']]):format(t.binary, c[1]))
    vim.cmd("Pillion hello")
    wait("the answer", function()
      return t.chat_text():find("Fine.", 1, true)
    end)
    eq(c[1], require("pillion.process").info.agentInfo.version)
    if not c[2] then
      return eq("", told(w))
    end
    wait("the message", function()
      return told(w):find(c[2], 1, true)
    end)
    match(c[3], told(w))
  end)
end

test("garbage on its output is left out, what follows is read", function()
  local w = t.world({ "Fine." }, {})
  require("pillion.config").options.cmd = script(w, "echo garbage; echo '{\"a\":'; printf '\\377\\n'; exec " .. t.binary .. ' "$@"\n')
  vim.cmd("Pillion hello")
  wait("the answer", function()
    return t.chat_text():find("Fine.", 1, true)
  end)
  eq(3, require("pillion.process").rpc.bad)
end)

test("a crash in a turn: said, started again, the session goes on", function()
  local w = t.world({ { hang = true }, "Here again." }, {})
  vim.cmd("Pillion hang")
  wait("the turn", function()
    return t.chat_text():find("thinking", 1, true)
  end)
  local process = require("pillion.process")
  local id = t.session().id
  vim.fn.system({ "kill", "-9", tostring(vim.fn.jobpid(process.rpc.job)) })
  wait("the restart", function()
    return t.chat_text():find("was restarted", 1, true)
  end)
  match("The sidecar ended", t.chat_text())
  eq(id, t.session().id)
  vim.cmd("Pillion again")
  wait("the answer", function()
    return t.chat_text():find("Here again.", 1, true)
  end)
  t.ok(#w.told > 0)
end)

test("one that crashes again and again is left alone, and says so", function()
  local w = t.world({ "x" }, {}, { restart = 1 })
  vim.cmd("Pillion hello")
  t.idle()
  local process = require("pillion.process")
  for _ = 1, 2 do
    local pid = vim.fn.jobpid(process.rpc.job)
    vim.fn.system({ "kill", "-9", tostring(pid) })
    wait("the end", function()
      local alive, now = pcall(vim.fn.jobpid, process.rpc and process.rpc.job or -1)
      return process.state == "failed" or (process.state == "ready" and alive and now ~= pid)
    end)
  end
  eq("failed", process.state)
  wait("the message", function()
    return told(w):find("ended 2 times", 1, true)
  end)
  vim.cmd("Pillion restart")
  wait("the restart", function()
    return process.state == "ready"
  end)
end)

test("lone surrogates and invalid UTF-8 in messages", function()
  local decode = require("pillion.compat").json_decode
  local ok, v = decode([[{"a":"x\ud800y","b":"\ud83d\ude00","c":"\\ud800","d":"\udc00"}]])
  eq(true, ok)
  eq({ a = "x\239\191\189y", b = "😀", c = "\\ud800", d = "\239\191\189" }, v)
end)

test("huge lines in the answer and in a file", function()
  local long = ("x"):rep(200000)
  t.world({ { tool = "read", input = { filePath = "a.txt" } }, { tool = "edit", input = { filePath = "a.txt", oldString = "tail", newString = long } }, "Done." }, { ["a.txt"] = long .. "\ntail\n" })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("Pillion review")
  vim.cmd("redraw")
  vim.cmd("Pillion accept all")
  t.idle()
  eq(long, t.lines(vim.fn.bufnr("a.txt"))[2])
end)

local function edit_steps()
  return { { tool = "read", input = { filePath = "a.txt" } }, { tool = "edit", input = { filePath = "a.txt", oldString = "two", newString = "TWO" } }, "Done." }
end

test("a nomodifiable buffer is refused with the reason", function()
  local w = t.world(edit_steps(), { ["a.txt"] = "one\ntwo\n" })
  vim.cmd("edit a.txt")
  vim.bo.modifiable = false
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("Pillion accept all")
  t.idle()
  eq("two", t.lines()[2])
  match("nomodifiable", vim.json.encode(t.seen(w)[3].messages))
end)

test("a readonly buffer is changed, and the person is told", function()
  local w = t.world(edit_steps(), { ["a.txt"] = "one\ntwo\n" })
  vim.cmd("view a.txt")
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("Pillion accept all")
  t.idle()
  eq("TWO", t.lines()[2])
  match("read%-only", told(w))
end)

test("a buffer that is wiped or renamed during the review", function()
  local w = t.world(edit_steps(), { ["a.txt"] = "one\ntwo\n" })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("silent file other.txt")
  vim.cmd("Pillion accept all")
  t.idle()
  eq("two", t.lines(vim.fn.bufnr("other.txt"))[2])
  eq("one\nTWO\n", t.read(w.project .. "/a.txt"))
end)

test("a file that changes on the disk during the review", function()
  local w = t.world(edit_steps(), { ["a.txt"] = "one\ntwo\n" })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion go")
  t.review()
  t.write(w.project .. "/a.txt", "zero\nand more\none\ntwo\n")
  vim.cmd("silent! checktime")
  vim.cmd("Pillion accept all")
  t.idle()
  wait("the text", function()
    return vim.deep_equal({ "zero", "and more", "one", "TWO" }, t.lines())
  end)
end)

test("a hidden and an unloaded buffer", function()
  local w = t.world(edit_steps(), { ["a.txt"] = "one\ntwo\n", ["b.txt"] = "x\n" })
  vim.o.hidden = true
  vim.cmd("edit a.txt")
  vim.cmd("edit b.txt")
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("bunload " .. vim.fn.bufnr("a.txt"))
  vim.cmd("Pillion accept all")
  t.idle()
  eq("one\nTWO\n", t.read(w.project .. "/a.txt"))
  vim.cmd("edit a.txt")
  eq("TWO", t.lines()[2])
end)

test("two Neovims on one project: both work, each keeps its text", function()
  local w = t.world({ "first", { tool = "read", input = { filePath = "a.txt" } }, { tool = "edit", input = { filePath = "a.txt", oldString = "two", newString = "TWO" } }, "Done." }, { ["a.txt"] = "one\ntwo\n" })
  vim.cmd("edit a.txt")
  local other = vim.fn.jobstart({ vim.v.progpath, "--headless", "--embed", "-u", "NONE", "-i", "NONE", "-n", "--cmd", "set rtp^=" .. t.root }, { rpc = true })
  table.insert(t.jobs, other)
  local lua = [[
    local project, options = ...
    vim.cmd("runtime! plugin/pillion.lua")
    vim.cmd("cd " .. project)
    require("pillion").setup(options)
    vim.cmd("edit a.txt")
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { "typed in the other" })
    vim.cmd("Pillion hello")
  ]]
  vim.rpcrequest(other, "nvim_exec_lua", lua, { w.project, { cmd = t.binary, env = require("pillion.config").options.env } })
  wait("the other's answer", function()
    return vim.rpcrequest(other, "nvim_exec_lua", [[local s = require("pillion.session").current return s.id ~= nil and not s:busy()]], {})
  end)
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("Pillion accept all")
  t.idle()
  eq({ "one", "TWO" }, t.lines())
  eq({ "typed in the other", "two" }, vim.rpcrequest(other, "nvim_buf_get_lines", 0, 0, -1, false))
  eq("one\ntwo\n", t.read(w.project .. "/a.txt"))
  pcall(vim.rpcnotify, other, "nvim_command", "qall!")
end)

test("the editor's exit ends the sidecar", function()
  local w = t.world({ { hang = true } }, {})
  local other = vim.fn.jobstart({ vim.v.progpath, "--headless", "--embed", "-u", "NONE", "-i", "NONE", "-n", "--cmd", "set rtp^=" .. t.root }, { rpc = true })
  vim.rpcrequest(other, "nvim_exec_lua", [[
    local project, options = ...
    vim.cmd("runtime! plugin/pillion.lua")
    vim.cmd("cd " .. project)
    require("pillion").setup(options)
    vim.cmd("Pillion hello")
  ]], { w.project, { cmd = t.binary, env = require("pillion.config").options.env } })
  local pid = wait("its sidecar", function()
    local pid = vim.rpcrequest(other, "nvim_exec_lua", [[local p = require("pillion.process") return p.state == "ready" and vim.fn.jobpid(p.rpc.job) or 0]], {})
    return pid > 0 and pid
  end)
  pcall(vim.rpcnotify, other, "nvim_command", "qall!")
  wait("the end of the sidecar", function()
    return vim.loop.kill(pid, 0) ~= 0
  end, 5000)
end)

test("setup: mistakes are named, the rest counts", function()
  local config = require("pillion.config")
  eq({}, config.problems({ cmd = { "a", "b" }, keymaps = { accept = "x", next = false }, chat = { position = "left" } }))
  local p = table.concat(config.problems({ chat = { positon = "left", width = "wide" }, folow = true, review = { layout = "both" }, keymaps = 3 }), "\n")
  match("unknown option chat.positon, did you mean chat.position", p)
  match("chat.width: want a number, got a string", p)
  match("unknown option folow, did you mean follow", p)
  match("review.layout: want one of unified, split", p)
  match("keymaps: want a boolean or table", p)
  local w = {}
  vim.notify = function(m)
    w[#w + 1] = m
  end
  require("pillion").setup({ folow = true, notify = false })
  eq(false, config.options.notify)
  match("folow", w[1])
end)

test("nothing is loaded before it is used; setup sets the keys it is told to", function()
  for name in pairs(package.loaded) do
    if name:match("^pillion") then
      package.loaded[name] = nil
    end
  end
  require("pillion")
  local loaded = {}
  for name in pairs(package.loaded) do
    if name:match("^pillion") then
      loaded[#loaded + 1] = name
    end
  end
  eq({ "pillion" }, loaded)
  require("pillion").setup({ global_keymaps = { toggle = "<F5>" } })
  match("pillion%-toggle", vim.fn.maparg("<F5>", "n"))
  vim.keymap.del("n", "<F5>")
  for _, plug in ipairs({ "toggle", "prompt", "accept", "reject", "next", "prev", "edit", "comment", "accept-all", "stop", "undo" }) do
    t.ok(vim.fn.maparg("<Plug>(pillion-" .. plug .. ")", "n") ~= "", plug)
  end
end)

test(":checkhealth says what is there and what is missing", function()
  t.world({ "x" }, {})
  vim.cmd("Pillion hello")
  t.idle()
  vim.cmd("silent checkhealth pillion")
  local text = table.concat(t.lines(), "\n")
  match("found " .. vim.pesc(t.binary), text)
  match("running, version", text)
  vim.cmd("bwipeout!")
  require("pillion.config").options.cmd = "/no/such/pillion"
  vim.cmd("silent checkhealth pillion")
  match("not an executable", table.concat(t.lines(), "\n"))
end)

test(":Pillion trust shows what is held back, and trusts if the person says so", function()
  local w = t.world(nil, { [".git/HEAD"] = "ref: refs/heads/main\n", ["pillion.jsonc"] = [[{"mcp": {"theirs": {"command": ["their-program"]}}}]] })
  local function message(pattern)
    return t.wait(pattern, function()
      for _, m in ipairs(w.told) do
        if m.text:find(pattern) then
          return m.text
        end
      end
    end)
  end
  local function trusted()
    local out = vim.fn.system({ "env", "HOME=" .. w.home, "XDG_STATE_HOME=" .. w.home .. "/state", "XDG_CONFIG_HOME=" .. w.home .. "/config", t.binary, "config", "check", "--json" })
    return vim.json.decode(out).trusted
  end
  local shown = t.select("Leave it", "Trust it")
  vim.cmd("Pillion trust")
  match("pillion.jsonc:1 mcp.theirs: it would start a program", message("held back until you trust"))
  t.wait("the first choice", function()
    return #shown > 0
  end)
  eq(false, trusted())
  vim.cmd("Pillion trust")
  message("now used: .*mcp.theirs")
  eq(true, trusted())
  vim.cmd("Pillion trust")
  message("this folder is trusted")
  vim.cmd("Pillion trust revoke")
  message("no longer trusted")
  eq(false, trusted())
  require("pillion.config").options.trust = false
  vim.cmd("Pillion trust")
  message("the option trust is false")
end)

test("the help file has a tag for every subcommand and every option", function()
  local doc = t.read(t.root .. "/doc/pillion.txt")
  for name in pairs(require("pillion.subcommands").subcommands) do
    t.ok(doc:find("*:Pillion-" .. name .. "*", 1, true), ":Pillion " .. name .. " is not in the help file")
  end
  for name in pairs(require("pillion.config").defaults) do
    t.ok(doc:find("*pillion-option-" .. name .. "*", 1, true), "option " .. name .. " is not in the help file")
  end
  for group in pairs(require("pillion.highlights").groups) do
    t.ok(doc:find(group, 1, true), group .. " is not in the help file")
  end
  local copy = vim.fn.tempname()
  vim.fn.mkdir(copy)
  t.write(copy .. "/pillion.txt", doc)
  vim.cmd("helptags " .. copy)
  match(":Pillion\t", t.read(copy .. "/tags"))
  for line in doc:gmatch("[^\n]+") do
    t.ok(vim.fn.strdisplaywidth(line) <= 80, "wider than 80 columns: " .. line)
  end
end)

test(":packadd from this repository's subfolder", function()
  local pack = vim.fn.tempname()
  vim.fn.mkdir(pack .. "/pack/x/opt", "p")
  vim.loop.fs_symlink(t.root, pack .. "/pack/x/opt/pillion")
  local out = vim.fn.system({ vim.v.progpath, "--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", "set packpath=" .. pack, "-c", "packadd pillion", "-c", "lua io.stdout:write(vim.fn.exists(':Pillion') .. ' ' .. tostring(require('pillion').setup ~= nil) .. ' ' .. (require('pillion.process').find() or {})[1])", "-c", "qa!" })
  match("^2 true .*pillion", out)
end)

t.run()
