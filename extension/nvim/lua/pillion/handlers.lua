-- The handlers of the sidecar's requests and notifications, by method, and of its start and end. Each loads its
-- module when it is first called; loading a module registers nothing.
local M = {}

-- The _pillion methods that this plugin announces in initialize.
M.announced = {
  "_pillion/workspace/applyEdit",
  "_pillion/change/updated",
  "_pillion/diagnostics/check",
  "_pillion/diagnostics/updated",
  "_pillion/review/updated",
  "_pillion/session/queueUpdated",
  "_pillion/session/reverted",
  "_pillion/session/statusUpdated",
}

local function session(p)
  return require("pillion.session").by_id[p.sessionId]
end

---@type table<"ready"|"exit", fun(arg?: any)>
M.lifecycle = {
  ready = function()
    require("pillion.diagnostics").follow()
    require("pillion.session").reopen()
  end,
  exit = function(e)
    require("pillion.session").lost(e)
    require("pillion.approval").lost()
    require("pillion.diagnostics").clear()
  end,
}

M.table = {
  ["session/update"] = function(p)
    local s = session(p)
    if s and p.update then
      s:update(p.update)
    end
  end,
  ["session/request_permission"] = function(p, reply, id)
    require("pillion.approval").permission(p, reply, id)
  end,
  ["elicitation/create"] = function(p, reply, id)
    require("pillion.approval").form(p, reply, id)
  end,
  ["$/cancel_request"] = function(p)
    require("pillion.approval").cancelled(p.requestId)
  end,
  ["fs/read_text_file"] = function(p, reply)
    local paths = require("pillion.paths")
    local buf = paths.buffer(p.path)
    local content, err
    if buf and vim.api.nvim_buf_is_loaded(buf) then
      content = require("pillion.text").of(buf)
    else
      content, err = paths.read(p.path)
    end
    if not content then
      return reply(nil, { code = -32002, message = err })
    end
    if p.line or p.limit then
      local lines = vim.split(content, "\n", { plain = true })
      local first = math.max(p.line or 1, 1)
      content = table.concat(lines, "\n", first, math.min(#lines, first + (p.limit or #lines) - 1))
    end
    reply({ content = content })
  end,
  ["_pillion/workspace/applyEdit"] = function(p, reply)
    reply(require("pillion.edits").workspace(p))
  end,
  ["_pillion/change/updated"] = function(p)
    local s = session(p)
    if s then
      s:change_updated(p.change)
    end
  end,
  ["_pillion/diagnostics/check"] = function(p, reply)
    require("pillion.text_check").answer(p, reply)
  end,
  ["_pillion/diagnostics/updated"] = function(p)
    require("pillion.diagnostics").updated(p)
  end,
  ["_pillion/review/updated"] = function(p)
    require("pillion.quickfix").findings(p)
  end,
  ["_pillion/session/queueUpdated"] = function(p)
    local s = session(p)
    if s then
      s:queue_updated(p.items, p.held)
    end
  end,
  ["_pillion/session/statusUpdated"] = function(p)
    local s = session(p)
    if s then
      s:status_updated(p.status)
    end
  end,
  ["_pillion/session/reverted"] = function(p)
    local s = session(p)
    if s then
      s:reverted(p.messageId)
    end
  end,
}

return M
