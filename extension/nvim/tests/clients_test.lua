-- Other people's ACP clients in this Neovim, unmodified, with Pillion's hunk review. Their archives lie beside the
-- repository, in ../shared/clients.
local t = dofile(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/helper.lua")
local test, eq, match, wait = t.test, t.eq, t.match, t.wait

local archives = vim.env.CLIENTS or vim.fn.fnamemodify(t.repo, ":h") .. "/shared/clients"
if vim.fn.has("nvim-0.11") == 0 or vim.fn.filereadable(archives .. "/codecompanion.nvim.tar.gz") == 0 then
  io.stdout:write("skip: CodeCompanion and agentic.nvim want Neovim 0.11, and their archives in " .. archives .. "\n")
  vim.cmd("qall!")
end

local plugins = vim.fn.tempname()
vim.fn.mkdir(plugins, "p")
for _, name in ipairs({ "plenary.nvim", "codecompanion.nvim", "agentic.nvim" }) do
  vim.fn.system({ "tar", "-xzf", archives .. "/" .. name .. ".tar.gz", "-C", plugins })
  vim.opt.runtimepath:append(plugins .. "/" .. name)
end

-- A project whose environment the other client's own `pillion acp` inherits.
local function world(steps, files)
  local w = t.world(steps, files)
  for name, value in pairs(require("pillion.config").options.env) do
    vim.env[name] = value
  end
  return w
end

local ten = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
local function steps()
  return {
    { tool = "read", input = { filePath = "a.txt" } },
    { tool = "multiedit", input = { filePath = "a.txt", edits = { { oldString = "two", newString = "TWO" }, { oldString = "nine", newString = "NINE" } } } },
    "Done.",
  }
end

-- Accepts the first hunk, rejects the second, and waits until the client's own agent has written that.
local function decide(w)
  local review = t.review()
  eq(2, #review.hunks)
  vim.cmd("Pillion review")
  match("a.txt$", vim.fn.bufname())
  vim.cmd("Pillion accept")
  eq(ten, t.read(w.project .. "/a.txt"), "written before the decision")
  vim.cmd("Pillion reject")
  eq(true, review.closed)
  local want = ten:gsub("two", "TWO")
  wait("the accepted hunk", function()
    return t.read(w.project .. "/a.txt") == want
  end)
end

test("CodeCompanion: a proposal is reviewed hunk by hunk", function()
  local w = world(steps(), { ["a.txt"] = ten })
  require("codecompanion").setup({
    adapters = {
      acp = {
        pillion = function()
          return require("codecompanion.adapters").extend("gemini_cli", {
            name = "pillion",
            formatted_name = "Pillion",
            commands = { default = { t.binary, "acp" } },
            defaults = { auth_method = "none" },
            env = {},
            handlers = {
              auth = function()
                return true
              end,
            },
          })
        end,
      },
    },
    interactions = { chat = { adapter = "pillion" } },
    opts = { log_level = "ERROR" },
  })
  require("pillion.clients").codecompanion()
  vim.cmd("edit a.txt")
  local chat = require("codecompanion").chat()
  chat:add_buf_message({ role = "user", content = "shout" })
  wait("the agent's session", function()
    return chat.acp_connection and chat.acp_connection.session_id
  end)
  chat:submit()
  decide(w)
  local seen
  wait("the end of the turn", function()
    seen = t.seen(w)
    return #seen >= 3
  end)
  match("nine", vim.json.encode(seen[3].messages[#seen[3].messages]))
  pcall(function()
    chat:close()
  end)
end)

test("agentic.nvim: a proposal is reviewed hunk by hunk", function()
  local w = world(steps(), { ["a.txt"] = ten })
  require("pillion.clients").agentic()
  local client = require("agentic.acp.acp_client")
  local c = client:new({ name = "Pillion", command = t.binary, args = { "acp" }, env = vim.deepcopy(require("pillion.config").options.env) })
  wait("the agent", function()
    return c.state == "ready"
  end)
  vim.cmd("edit a.txt")
  local session
  local function nothing() end
  c:create_session({
    on_session_update = nothing,
    on_request_permission = function()
      error("agentic's own question was asked")
    end,
    on_error = nothing,
    on_read_file = function(_, _, _, done)
      done(table.concat(t.lines(vim.fn.bufnr("a.txt")), "\n") .. "\n")
    end,
    on_write_file = function(path, content, done)
      t.write(path, content)
      vim.cmd("checktime")
      done()
    end,
  }, function(result)
    session = result.sessionId
  end)
  wait("a session", function()
    return session
  end)
  local ended
  c:send_prompt(session, { { type = "text", text = "shout" } }, function()
    ended = true
  end)
  decide(w)
  wait("the end of the turn", function()
    return ended
  end)
  c:stop()
end)

t.run()
